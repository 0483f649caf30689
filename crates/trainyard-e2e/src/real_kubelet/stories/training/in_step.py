"""Workers add up a number over all of them in every step, and go on from the last step that was saved."""

import os
import pathlib
import time

import tensorflow as tf

STEPS = 30
saved = pathlib.Path("/share/step")
options = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
index = strategy.cluster_resolver.task_id
first = int(saved.read_text()) if saved.exists() else 0
if first:
    print("goes on from step", first, flush=True)


@tf.function
def add():
    def one():
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(float(index + 1)))

    return strategy.run(one)


total = 0.0
# All begin with the same step: the one that the first of them has read.
first = int(
    strategy.run(
        lambda: tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, tf.constant(float(first if index == 0 else 0))
        )
    ).numpy()
)
for step in range(first + 1, STEPS + 1):
    try:
        total = float(add())
    except tf.errors.OpError as error:
        # Without the other there is no next step: all are to start again, which this code asks for.
        print("left alone:", error.message.splitlines()[0], flush=True)
        os._exit(138)
    print("step", step, "sum", total, flush=True)
    if index == 0:
        new = saved.with_suffix(".new")
        new.write_text(str(step))
        new.rename(saved)
    # Slow enough to be killed on the way.
    time.sleep(0.2 if first else 1)
assert total == 3.0, total
print("the sum over", strategy.num_replicas_in_sync, "workers is right", flush=True)
