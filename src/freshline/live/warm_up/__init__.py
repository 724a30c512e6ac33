"""Plans of updates that Spark compiles before the first file is looked for."""
