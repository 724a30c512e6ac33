"""The live driver: the kernel in wall-clock time, on real files and real Spark jobs."""
