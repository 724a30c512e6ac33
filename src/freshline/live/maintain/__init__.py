"""Commands on a warehouse that does not run: calibrate, migrate, rebuild, reslice."""
