"""A ZeroMQ peer that is no tardy: answers, or asks, and prints what it counted as JSON.

zmq_peer.py answer: a REP socket on a free port, which is printed first; it sends back what it gets
until its standard input is closed. zmq_peer.py ask HOST:PORT COUNT SIZE: a REQ socket.
"""

import json
import os
import sys

import zmq


def tell(value):
    print(json.dumps(value), flush=True)


def answer():
    socket = zmq.Context().socket(zmq.REP)
    tell({"port": socket.bind_to_random_port("tcp://127.0.0.1")})
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    counted, sizes = 0, set()
    while True:
        ready = dict(poller.poll())
        if socket in ready:
            message = socket.recv()
            counted += 1
            sizes.add(len(message))
            socket.send(message)
        elif sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 1):
            break
    tell({"counted": counted, "sizes": sorted(sizes)})


def ask(to, count, size):
    socket = zmq.Context().socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVTIMEO, 60_000)
    socket.connect(f"tcp://{to}")
    same = 0
    for number in range(count):
        message = bytes((number + at) % 251 for at in range(size))
        socket.send(message)
        same += socket.recv() == message
    tell({"counted": count, "same": same})


if sys.argv[1] == "answer":
    answer()
else:
    ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
