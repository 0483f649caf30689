"""Trains a small network on scikit-learn's digits with a parameter server, a chief, workers and an
evaluator. Who is who comes from TF_CONFIG; the model, its checkpoints and the summaries go to
MODEL_DIR, which all replicas share."""

import json
import os
import pathlib
import time

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

MODEL_DIR = pathlib.Path(os.environ.get("MODEL_DIR", "/model"))
EPOCHS = int(os.environ.get("EPOCHS", "5"))
STEPS = int(os.environ.get("STEPS", "60"))
BATCH = 64
DONE = MODEL_DIR / "done"


def data():
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int64)
    order = np.random.RandomState(7).permutation(len(labels))
    images, labels = images[order], labels[order]
    return (images[:1500], labels[:1500]), (images[1500:], labels[1500:])


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        random = tf.random.Generator.from_seed(1)
        self.hidden = tf.Variable(random.normal([64, 64], stddev=0.1))
        self.hidden_bias = tf.Variable(tf.zeros([64]))
        self.output = tf.Variable(random.normal([64, 10], stddev=0.1))
        self.output_bias = tf.Variable(tf.zeros([10]))
        self.step = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

    def __call__(self, images):
        hidden = tf.nn.relu(tf.matmul(images, self.hidden) + self.hidden_bias)
        return tf.matmul(hidden, self.output) + self.output_bias

    def weights(self):
        return [self.hidden, self.hidden_bias, self.output, self.output_bias]


def accuracy(network, images, labels):
    guesses = tf.argmax(network(tf.constant(images)), axis=1)
    return float(tf.reduce_mean(tf.cast(guesses == labels, tf.float32)))


def serve(resolver):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    )
    print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server.join()


def lead(resolver):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        network = Network()
    (images, labels), (test_images, test_labels) = data()

    def batches(_context=None):
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        return dataset.shuffle(1500).repeat().batch(BATCH).prefetch(2)

    @tf.function
    def train_step(iterator):
        def step(batch):
            batch_images, batch_labels = batch
            with tf.GradientTape() as tape:
                logits = network(batch_images)
                loss = tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(batch_labels, logits)
                )
            weights = network.weights()
            for weight, gradient in zip(weights, tape.gradient(loss, weights)):
                weight.assign_sub(0.2 * gradient)
            network.step.assign_add(1)
            return loss

        return strategy.run(step, args=(next(iterator),))

    per_worker = coordinator.create_per_worker_dataset(
        lambda: strategy.distribute_datasets_from_function(batches)
    )
    iterator = iter(per_worker)
    checkpoint = tf.train.Checkpoint(network=network)
    manager = tf.train.CheckpointManager(checkpoint, str(MODEL_DIR / "checkpoints"), max_to_keep=3)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)
        print(f"goes on from step {int(network.step)}", flush=True)
    for epoch in range(EPOCHS):
        losses = [coordinator.schedule(train_step, args=(iterator,)) for _ in range(STEPS)]
        coordinator.join()
        loss = float(np.mean([value.fetch() for value in losses]))
        right = accuracy(network, test_images, test_labels)
        manager.save()
        print(f"epoch {epoch} step {int(network.step)} loss {loss:.4f} accuracy {right:.4f}", flush=True)
    np.savez(MODEL_DIR / "model.npz", *[weight.numpy() for weight in network.weights()])
    DONE.write_text(json.dumps({"accuracy": accuracy(network, test_images, test_labels)}))
    print("training is done", flush=True)


def evaluate():
    network = Network()
    checkpoint = tf.train.Checkpoint(network=network)
    _, (images, labels) = data()
    seen = None
    while True:
        done = DONE.exists()
        latest = tf.train.latest_checkpoint(str(MODEL_DIR / "checkpoints"))
        if latest and latest != seen:
            checkpoint.restore(latest).expect_partial()
            print(f"evaluated {pathlib.Path(latest).name}: {accuracy(network, images, labels):.4f}", flush=True)
            seen = latest
        if done:
            return
        time.sleep(1)


def main():
    MODEL_DIR.mkdir(parents=True, exist_ok=True)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    elif resolver.task_type == "evaluator":
        evaluate()
    else:
        lead(resolver)


main()
