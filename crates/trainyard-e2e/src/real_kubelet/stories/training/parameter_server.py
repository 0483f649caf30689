"""A chief has a worker count on a parameter server and saves the count; an evaluator reads it."""

import json
import os
import pathlib
import time

task = json.loads(os.environ["TF_CONFIG"])["task"]
kind, index = task["type"], task["index"]

import tensorflow as tf

print(kind, index, "is here", flush=True)
share = pathlib.Path("/share")

if kind == "evaluator":
    while not tf.train.latest_checkpoint(str(share)):
        time.sleep(0.5)
    count = tf.Variable(0.0)
    tf.train.Checkpoint(count=count).restore(tf.train.latest_checkpoint(str(share))).expect_partial()
    print("evaluated", int(count.numpy()), flush=True)
elif kind == "chief":
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        count = tf.Variable(0.0)

    @tf.function
    def step():
        count.assign_add(1.0)

    for _ in range(20):
        coordinator.schedule(step)
    coordinator.join()
    print("counted", int(count.numpy()), flush=True)
    tf.train.Checkpoint(count=count).save(str(share / "model"))
    while not (share / "end").exists():
        time.sleep(0.5)
    print("training is done", flush=True)
else:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=kind, task_index=index, protocol="grpc"
    )
    server.join()
