"""Trains a small network on scikit-learn's digits on several workers in step
(MultiWorkerMirroredStrategy), and goes on from the last checkpoint when it is started again."""

import os
import pathlib
import time

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

MODEL_DIR = pathlib.Path(os.environ.get("MODEL_DIR", "/model"))
STEPS = int(os.environ.get("STEPS", "300"))
PAUSE = float(os.environ.get("PAUSE", "0"))
BATCH = 64

options = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
resolver = strategy.cluster_resolver
chief = resolver.task_type == "chief" or (
    resolver.task_id == 0 and "chief" not in resolver.cluster_spec().as_dict()
)
print(f"{resolver.task_type} {resolver.task_id} of {strategy.num_replicas_in_sync} is here", flush=True)

digits = load_digits()
images = (digits.data / 16.0).astype(np.float32)
labels = digits.target.astype(np.int64)

with strategy.scope():
    hidden = tf.Variable(tf.random.stateless_normal([64, 64], seed=[1, 2], stddev=0.1))
    output = tf.Variable(tf.random.stateless_normal([64, 10], seed=[3, 4], stddev=0.1))
# Each worker counts for itself: the count is the same everywhere.
step = tf.Variable(0, dtype=tf.int64)


def logits_of(batch):
    return tf.matmul(tf.nn.relu(tf.matmul(batch, hidden)), output)


@tf.function
def train(batch):
    def one(batch_images, batch_labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(batch_labels, logits_of(batch_images))
            loss = tf.reduce_sum(losses) / (BATCH * strategy.num_replicas_in_sync)
        gradients = tape.gradient(loss, [hidden, output])
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        for weight, gradient in zip([hidden, output], gradients):
            weight.assign_sub(0.3 * gradient)
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(one, args=batch), axis=None)


checkpoint = tf.train.Checkpoint(hidden=hidden, output=output, step=step)
# Every worker must take part in saving; only the chief's is kept.
folder = MODEL_DIR / "checkpoints" if chief else pathlib.Path("/tmp/checkpoints")
manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=2)
latest = tf.train.latest_checkpoint(str(MODEL_DIR / "checkpoints"))
if latest:
    checkpoint.restore(latest)
    print(f"goes on from step {int(step.numpy())}", flush=True)

dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1800, seed=5).repeat()
dataset = dataset.batch(BATCH * strategy.num_replicas_in_sync)
iterator = iter(strategy.experimental_distribute_dataset(dataset))
while int(step.numpy()) < STEPS:
    loss = train(next(iterator))
    step.assign_add(1)
    if int(step.numpy()) % 20 == 0:
        print(f"step {int(step.numpy())} loss {float(loss):.4f}", flush=True)
        manager.save()
    time.sleep(PAUSE)
guesses = tf.argmax(logits_of(tf.constant(images)), axis=1)
print(f"accuracy {float(tf.reduce_mean(tf.cast(guesses == labels, tf.float32))):.4f}", flush=True)
print("training is done", flush=True)
