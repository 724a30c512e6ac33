"""Everything that reads a SELECT: its columns, its time, whether it is safe, how to answer it in parts."""
