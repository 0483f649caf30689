"""A fixed amount of training on one core; says what its loop took."""
import json
import sys
import time

begin, begin_cpu = time.monotonic(), time.process_time()
import tensorflow as tf

import_s, import_cpu_s = time.monotonic() - begin, time.process_time() - begin_cpu
tf.random.set_seed(1)
inputs = tf.random.normal([512, 1024])
wanted = tf.random.normal([512, 10])
hidden = tf.Variable(tf.random.normal([1024, 1024], stddev=0.02))
output = tf.Variable(tf.random.normal([1024, 10], stddev=0.02))


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.relu(inputs @ hidden) @ output - wanted) ** 2)
    for variable, gradient in zip((hidden, output), tape.gradient(loss, (hidden, output))):
        variable.assign_sub(0.05 * gradient)
    return loss


for _ in range(10):
    loss = step()
float(loss)
begin, begin_cpu = time.monotonic(), time.process_time()
for _ in range(int(sys.argv[1])):
    loss = step()
loss = float(loss)
wall_s, cpu_s = time.monotonic() - begin, time.process_time() - begin_cpu
print(json.dumps({
    "wall_s": wall_s, "cpu_s": cpu_s, "import_s": import_s, "import_cpu_s": import_cpu_s,
    "loss": loss, "python": sys.executable,
}))
