"""What the data set, the objective and the solvers share."""
