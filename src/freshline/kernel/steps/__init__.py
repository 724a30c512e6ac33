"""Steps toward outputs with an end-to-end deadline, as a kernel runs them (paper 002)."""
