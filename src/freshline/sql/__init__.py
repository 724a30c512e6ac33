"""Everything that reads a SELECT: its columns, its time, whether it is safe, how it is answered in parts."""
