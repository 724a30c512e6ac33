"""A user's file as frozen, validated records, each with its position in the file."""
