"""A user's file as frozen, validated records with the place in the file that each came from."""
