"""The sweep over PyTorch's own data bases of operators, modules and optimizers: the device against the CPU."""
