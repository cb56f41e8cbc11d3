"""Rows answered in their order on Ray Data: one task reads, and a pool of actors that each open the bundle answers."""

import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads its environment when it is imported
if not os.environ.get("RAY_ADDRESS"):  # who may talk to Ray on this machine: holders of a token that dies with this run
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))

import pyarrow as pa
import ray
from ray.data import ActorPoolStrategy, DataContext, from_items

from mqan_cli.batch.answering import ROWS_TOGETHER, Parts
from mqan_cli.batch.inputs import Row, Rows
from mqan_cli.batch.plan import Plan
from mqan_cli.local import Worker

_COLUMN: Final = "line"
_STORE_BYTES: Final = 256 * 1024 * 1024
_BLOCK_BYTES: Final = 16 * 1024  # handed on as soon as so many are read: by default 128 MB, which is all rows


@contextmanager
def on_ray(rows: Rows, num_done: int, folder: Path, plan: Plan, number: int) -> Iterator[Parts]:
    """Answer rows but for those that are done, on the cluster of RAY_ADDRESS, or with a Ray of this run's own."""
    here: dict[str, Any] = {"address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    here |= {"num_cpus": number, "object_store_memory": _STORE_BYTES}
    ray.init(**({} if os.environ.get("RAY_ADDRESS") else here), logging_level=logging.ERROR, log_to_driver=False)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    context.target_min_block_size, context.target_max_block_size = 1, _BLOCK_BYTES

    def read(_: pa.Table) -> Iterator[pa.Table]:
        unread = islice(rows, num_done, None)
        while some := list(islice(unread, ROWS_TOGETHER)):
            yield pa.table({_COLUMN: [json.dumps([row.values, row.text, row.error]) for row in some]})

    try:
        unread = from_items([0], override_num_blocks=1).map_batches(read, batch_format="pyarrow", num_cpus=0)
        answered = unread.map_batches(
            _Actor,
            fn_constructor_args=(folder, plan),
            batch_size=ROWS_TOGETHER,
            batch_format="pyarrow",
            num_cpus=1,
            compute=ActorPoolStrategy(min_size=1, max_size=number, initial_size=number),
        )
        blocks: Iterable[pa.Table] = answered.iter_batches(batch_size=None, batch_format="pyarrow")
        yield (block[_COLUMN].to_pylist() for block in blocks)
    finally:
        ray.shutdown()


class _Actor:
    def __init__(self, folder: Path, plan: Plan) -> None:
        self._worker = Worker(folder, plan)

    def __call__(self, block: pa.Table) -> pa.Table:
        rows = [Row(*json.loads(line)) for line in block[_COLUMN].to_pylist()]
        return pa.table({_COLUMN: self._worker.answer_rows(rows)})
