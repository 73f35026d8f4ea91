"""Registers the Dynamo backend. Imported right after torch._dynamo.backends.registry."""

from torch_tpu import _compile

_compile.register()
