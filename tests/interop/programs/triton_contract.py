"""Tell the fields of the Open Inference Protocol as NVIDIA's client has them: ``python triton_contract.py``."""

import json
from typing import Any

from tritonclient.grpc import service_pb2


def fields(message: Any) -> dict[str, Any]:
    """Return the fields of a message by their names: number, type and label; those of messages in it, too."""
    return {field.name: [field.number, field.type, field.is_repeated] for field in message.fields} | {
        inner.name: fields(inner) for inner in message.nested_types
    }


print(json.dumps({name: fields(message) for name, message in service_pb2.DESCRIPTOR.message_types_by_name.items()}))
