"""What is in the tutorial's image `tf-mnist-with-summaries`: one worker learns digits and writes
summaries. The data is scikit-learn's, so that nothing is downloaded."""

import argparse

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

flags = argparse.ArgumentParser()
flags.add_argument("--log_dir", required=True)
flags.add_argument("--learning_rate", type=float, default=0.001)
flags.add_argument("--batch_size", type=int, default=100)
flags.add_argument("--max_steps", type=int, default=600)
flags = flags.parse_args()

digits = load_digits()
images, labels = (digits.data / 16.0).astype(np.float32), digits.target.astype(np.int64)
order = np.random.RandomState(7).permutation(len(labels))
images, labels = images[order], labels[order]
train = tf.data.Dataset.from_tensor_slices((images[:1500], labels[:1500]))
train = train.shuffle(1500, seed=1).repeat().batch(flags.batch_size)

weights = [
    tf.Variable(tf.random.stateless_normal([64, 64], seed=[1, 2], stddev=0.1)),
    tf.Variable(tf.zeros([64])),
    tf.Variable(tf.random.stateless_normal([64, 10], seed=[3, 4], stddev=0.1)),
    tf.Variable(tf.zeros([10])),
]
momentum = [tf.Variable(tf.zeros_like(weight)) for weight in weights]


def logits(batch):
    return tf.matmul(tf.nn.relu(tf.matmul(batch, weights[0]) + weights[1]), weights[2]) + weights[3]


@tf.function
def learn(batch, answers):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(answers, logits(batch))
        loss = tf.reduce_mean(losses)
    for weight, speed, gradient in zip(weights, momentum, tape.gradient(loss, weights)):
        speed.assign(0.9 * speed - flags.learning_rate * gradient)
        weight.assign_add(speed)
    return loss


@tf.function
def accuracy(batch, answers):
    return tf.reduce_mean(tf.cast(tf.argmax(logits(batch), axis=1) == answers, tf.float32))


train_writer = tf.summary.create_file_writer(f"{flags.log_dir}/train")
test_writer = tf.summary.create_file_writer(f"{flags.log_dir}/test")
for step, (batch, answers) in enumerate(train.take(flags.max_steps)):
    loss = learn(batch, answers)
    if step % 20 == 0:
        with train_writer.as_default(step=step):
            tf.summary.scalar("cross_entropy", loss)
        with test_writer.as_default(step=step):
            right = accuracy(images[1500:], labels[1500:])
            tf.summary.scalar("accuracy", right)
        print(f"Accuracy at step {step}: {float(right):.4f}", flush=True)
train_writer.close()
test_writer.close()
print(f"Final accuracy: {float(accuracy(images[1500:], labels[1500:])):.4f}", flush=True)
