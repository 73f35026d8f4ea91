"""Examples of unmodified PyTorch code running on device "tpu"."""
