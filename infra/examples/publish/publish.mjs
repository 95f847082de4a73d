// Publishes requests to Penstock from Node.js, in Arrow.
//
//   node publish.mjs nats://HOST:PORT ENTRY [PREFIX] < requests.jsonl
//
// Each line of the input is one request, a JSON object with the columns of
// docs/wire.md; "time", in µs since 1970, defaults to now. Publishing goes on
// until the input ends; while it is silent, heartbeats say that this publisher is
// still there. What is not acknowledged is sent again, the same bytes under the
// same sequence.

import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import * as arrow from "apache-arrow";
import xxhash from "xxhash-wasm";

const MAX_ROWS = 8192, MAX_BYTES = 512 << 10, MAX_AGE = 100; // of a batch; bytes and ms
const HEARTBEAT = 1000, DISORDER = 1000, MAX_SKEW = 600_000; // ms
const ACK_TIMEOUT = 3000; // ms; this library does not say at once that a connection was lost

const text = () => new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32());
const int64 = { type: () => new arrow.Int64(), from: BigInt };
const columns = { // name: [type, may be absent]
  time: [{ type: () => new arrow.TimestampMicrosecond("UTC"), from: BigInt }, false],
  mark: [{ type: () => new arrow.Uint8(), from: Number }, false],
  id: [{ type: text, from: String }, true],
  trace: [{ type: () => new arrow.FixedSizeBinary(16), from: (v) => Buffer.from(v, "hex") }, true],
  user: [{ type: text, from: String }, true],
  owner: [{ type: text, from: String }, true],
  lat: [{ type: () => new arrow.Float32(), from: Number }, true],
  lon: [{ type: () => new arrow.Float32(), from: Number }, true],
  from_component: [{ type: text, from: String }, true],
  from_site: [{ type: text, from: String }, true],
  to_component: [{ type: text, from: String }, true],
  to_site: [{ type: text, from: String }, true],
  to_server: [{ type: text, from: String }, true],
  op: [{ type: text, from: String }, false],
  class: [{ type: text, from: String }, true],
  bytes: [int64, false],
  wait_us: [int64, true],
  service_us: [int64, true],
  network_us: [int64, true],
  overdue_us: [int64, true],
  status: [{ type: () => new arrow.Uint16(), from: Number }, true],
};

// encode returns an Arrow IPC stream of one record batch. A column that is absent
// in all rows is left out.
function encode(rows) {
  const vectors = {};
  for (const [name, [{ type, from }, nullable]] of Object.entries(columns)) {
    const values = rows.map((row) => (row[name] == null ? null : from(row[name])));
    if (nullable && values.every((v) => v === null)) continue;
    if (name === "time") { // Vectors from arrays take times for dates.
      vectors[name] = arrow.makeVector(arrow.makeData({ type: type(), data: BigInt64Array.from(values) }));
      continue;
    }
    vectors[name] = arrow.vectorFromArray(values, type());
  }
  return arrow.tableToIPC(new arrow.Table(vectors), "stream");
}

class Publisher {
  // One run: everything that this process publishes.
  static async open(url, entry, prefix, { h64, h64Raw }) {
    const p = new Publisher();
    p.connection = await connect({ servers: url, name: "publish.mjs", maxReconnectAttempts: -1, waitOnFirstConnect: true });
    p.js = jetstream(p.connection);
    const manager = await p.untilAnswered("JetStream", () => jetstreamManager(p.connection));
    const info = await p.untilAnswered("EVENTS", () => manager.streams.info(prefix ? prefix + "_EVENTS" : "EVENTS"));
    p.partitions = Number(info.config.metadata["penstock.partitions"]);
    p.run = Date.now().toString(16).padStart(12, "0") + randomBytes(10).toString("hex"); // another one at each start
    Object.assign(p, { entry, prefix: prefix ? prefix + "." : "", h64, h64Raw, said: Date.now(), waiting: Promise.resolve() });
    p.open = Array.from({ length: p.partitions }, () => ({ rows: [], size: 0 }));
    p.seq = Array(p.partitions).fill(0);
    p.horizon = Array(p.partitions).fill(-2208988800000000); // what was announced, µs
    return p;
  }

  async untilAnswered(what, ask) {
    for (let wait = 50; ; wait = Math.min(2 * wait, 1000)) {
      try {
        return await ask();
      } catch (e) {
        console.error(`${what}: ${e.message}; trying again`);
        await sleep(wait);
      }
    }
  }

  // The partition of a row: by its owner, else its user, else its trace.
  partition(row) {
    const count = BigInt(this.partitions);
    if (row.owner ?? row.user) return Number(this.h64(row.owner ?? row.user) % count);
    return row.trace ? Number(this.h64Raw(Buffer.from(row.trace, "hex")) % count) : 0;
  }

  add(row) {
    for (const name in row) if (["", "-", "null"].includes(row[name])) delete row[name];
    const now = Date.now(), p = this.partition(row), batch = this.open[p];
    row.time ??= now * 1000;
    row.mark = row.time > (now + MAX_SKEW) * 1000 ? 2 : row.time < this.horizon[p] ? 1 : 0;
    batch.rows.push(row);
    batch.size += 200 + Object.values(row).reduce((n, v) => n + (typeof v === "string" ? v.length : 0), 0);
    if (batch.rows.length === MAX_ROWS || batch.size >= MAX_BYTES) this.cut(p);
  }

  watermark() {
    return (Date.now() - DISORDER) * 1000;
  }

  // cut closes the batch of a partition and puts it in line to be sent.
  cut(p) {
    const { rows } = this.open[p];
    this.open[p] = { rows: [], size: 0 };
    if (rows.length === 0) return;
    this.seq[p]++;
    this.horizon[p] = Math.max(this.horizon[p], this.watermark());
    this.send(`events.${p}.${this.entry}`, {
      "Penstock-Schema": "request/1", "Penstock-Run": this.run, "Penstock-Seq": this.seq[p],
      "Penstock-Rows": rows.length, "Penstock-Watermark": this.horizon[p],
    }, encode(rows));
  }

  cutAll() {
    for (let p = 0; p < this.partitions; p++) this.cut(p);
  }

  // mark is a heartbeat or the end. It holds for all partitions, so everything is
  // cut first.
  mark(kind) {
    this.cutAll();
    this.horizon.fill(Math.max(...this.horizon, this.watermark()));
    this.said = Date.now();
    this.send(`events.all.${this.entry}`, {
      "Penstock-Schema": "mark/1", "Penstock-Run": this.run, "Penstock-Mark": kind,
      "Penstock-Watermark": this.horizon[0], "Penstock-Upto": this.seq.join(","),
    });
  }

  // send puts a message behind those that are not acknowledged yet.
  send(subject, fields, body) {
    const h = headers();
    for (const [k, v] of Object.entries(fields)) h.set(k, String(v));
    const publish = () => this.js.publish(this.prefix + subject, body, { headers: h, timeout: ACK_TIMEOUT });
    this.waiting = this.waiting.then(() => this.untilAnswered(subject, publish));
  }
}

const [url, entry, prefix = ""] = process.argv.slice(2);
const publisher = await Publisher.open(url, entry, prefix, await xxhash());
const pace = setInterval(() => {
  publisher.cutAll();
  if (Date.now() - publisher.said >= HEARTBEAT) publisher.mark("heartbeat");
}, MAX_AGE);
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim()) publisher.add(JSON.parse(line));
}
clearInterval(pace);
publisher.mark("end");
await publisher.waiting;
await publisher.connection.drain();
console.log(JSON.stringify({ run: publisher.run, sequences: publisher.seq }));
