"""The public contract of mqan; the stubs of version 1 are in ``mqan.v1``."""
