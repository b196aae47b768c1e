"""Reads what `tardy export --to perfetto` wrote by Perfetto's own schema, checks that spans nest as
its viewer wants them, and prints them as JSON.

Argument: the file.
"""

import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

trace = schema.Trace()
with open(sys.argv[1], "rb") as file:
    written = file.read()
trace.ParseFromString(written)
trace.DiscardUnknownFields()
assert len(trace.SerializeToString()) == len(written), "there are fields that the schema has not"

tracks, clocks, spans, points, open_spans = {}, [], [], [], {}
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField("clock_snapshot"):
        clocks.append(packet.clock_snapshot.primary_trace_clock)
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        parent = tracks.get(track.parent_uuid, {}).get("name")
        assert track.uuid not in tracks and (parent or not track.parent_uuid)
        tracks[track.uuid] = {"name": track.name, "parent": parent}
    if packet.HasField("track_event"):
        event, at = packet.track_event, packet.timestamp
        track = tracks[event.track_uuid]
        open_here = open_spans.setdefault(event.track_uuid, [])
        one = {"at": at, "track": track["name"], "parent": track["parent"], "name": event.name}
        one["details"] = {a.name: a.string_value for a in event.debug_annotations}
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            open_here.append(one)
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            one = open_here.pop()
            one["ns"] = at - one["at"]
            assert one["ns"] >= 0, one
            spans.append(one)
        else:
            points.append(one)
assert not any(open_spans.values()), open_spans

print(json.dumps({"clocks": clocks, "spans": spans, "points": points}))
