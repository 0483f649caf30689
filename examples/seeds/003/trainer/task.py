"""What is in the tutorial's `your-image`: a trainer that reads its credentials from a mounted Secret.
It fits a line by gradient descent; the parameter server keeps the parameters, over plain sockets."""

import argparse
import json
import os
import random
import socket
import socketserver
import time

flags = argparse.ArgumentParser()
flags.add_argument("--batch_size", type=int, default=32)
flags.add_argument("--training_steps", type=int, default=1000)
flags = flags.parse_args()

path = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
if path:
    with open(path, encoding="utf-8") as file:
        print(f"credentials of project {json.load(file)['project_id']}", flush=True)

tf_config = json.loads(os.environ["TF_CONFIG"])
cluster, task = tf_config["cluster"], tf_config["task"]
host, port = cluster["ps"][0].rsplit(":", 1)


class Parameters(socketserver.StreamRequestHandler):
    """Adds what a worker sends to the parameters and answers with their sum."""

    values = [0.0, 0.0]

    def handle(self):
        for line in self.rfile:
            change = json.loads(line)
            self.values[:] = [value + add for value, add in zip(self.values, change)]
            self.wfile.write((json.dumps(self.values) + "\n").encode())


def serve():
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    with socketserver.ThreadingTCPServer(("", int(port)), Parameters) as server:
        print("the parameters are here", flush=True)
        server.serve_forever()


def connect():
    for _ in range(300):
        try:
            return socket.create_connection((host, int(port)), timeout=30).makefile("rw")
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"no parameter server at {host}:{port}")


def work():
    peer = connect()
    change = [0.0, 0.0]
    for step in range(flags.training_steps + 1):
        peer.write(json.dumps(change) + "\n")
        peer.flush()
        slope, offset = json.loads(peer.readline())
        points = [random.random() for _ in range(flags.batch_size)]
        errors = [slope * x + offset - (3 * x + 1) for x in points]
        rate = 0.1 / flags.batch_size
        change = [-rate * sum(e * x for e, x in zip(errors, points)), -rate * sum(errors)]
        if step % 250 == 0:
            print(f"step {step}: y = {slope:.3f} x + {offset:.3f}", flush=True)
    print("training is done", flush=True)


serve() if task["type"] == "ps" else work()
