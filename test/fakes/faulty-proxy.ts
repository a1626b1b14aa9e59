import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

/** What goes wrong with one request; null: nothing. */
export type Fault =
  /** Answers this status with S3's XML error of this name, without asking the server. */
  | { readonly answer: number; readonly name: string }
  /** Cuts the connection after so many bytes of the answer's body. */
  | { readonly cutAfter: number }
  /** Cuts the connection before any answer. */
  | { readonly hangUp: true }
  /** Never answers. */
  | { readonly silent: true }
  /** Waits before every chunk of the answer's body. */
  | { readonly slowMs: number }
  /** Never says that a condition was not met: a server that does not know If-Match and If-None-Match. */
  | { readonly conditions: 'ignored' }
  /** Inverts the byte of the answer's body at this place. */
  | { readonly flipByte: number }
  | null;

/** Decides what happens to a request; `count` counts requests from 1. */
export type Faults = (request: {
  readonly method: string;
  readonly path: string;
  /** After the question mark. */
  readonly query: string;
  readonly count: number;
}) => Fault;

/** An HTTP proxy in front of an S3 server that does to its traffic what networks and broken servers do. */
export interface FaultyProxy extends AsyncDisposable {
  readonly endpoint: string;
  /** `GET /bucket/key`, in order. */
  readonly requests: readonly string[];
  faults: Faults;
}

export async function startFaultyProxy(targetPort: number): Promise<FaultyProxy> {
  const requests: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '' } = incoming;
    const [path = '', query = ''] = url.split('?');
    requests.push(`${method} ${path}`);
    void serve(proxy.faults({ method, path, query, count: requests.length }), incoming, outgoing, targetPort);
  });
  const proxy: FaultyProxy = {
    endpoint: '',
    requests,
    faults: () => null,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(proxy, { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

async function serve(
  fault: Fault,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  port: number,
): Promise<void> {
  if (fault !== null && 'silent' in fault) return;
  if (fault !== null && 'hangUp' in fault) return void incoming.socket.destroy();
  if (fault !== null && 'answer' in fault) {
    incoming.resume();
    outgoing.writeHead(fault.answer, { 'content-type': 'application/xml' });
    outgoing.end(`<?xml version="1.0"?><Error><Code>${fault.name}</Code><Message>made up</Message></Error>`);
    return;
  }
  // The Host header goes through as it came: it is part of the signature.
  const { method, url: path, headers } = incoming;
  const onward = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
    if (answer.statusCode === 412 && fault !== null && 'conditions' in fault) {
      answer.resume();
      outgoing.writeHead(200, { etag: '"0"', 'content-length': '0' });
      outgoing.end();
      return;
    }
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(damage(fault, outgoing)).pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
}

/** The body as it passes: cut, slowed or changed. */
function damage(fault: Fault, outgoing: ServerResponse): Transform {
  let passed = 0;
  return new Transform({
    async transform(chunk: Buffer, _encoding, done) {
      const from = passed;
      passed += chunk.length;
      if (fault !== null && 'slowMs' in fault) await sleep(fault.slowMs);
      if (fault !== null && 'flipByte' in fault && fault.flipByte >= from && fault.flipByte < passed) {
        chunk[fault.flipByte - from] = ~(chunk[fault.flipByte - from] ?? 0) & 255;
      }
      if (fault !== null && 'cutAfter' in fault && passed > fault.cutAfter) {
        outgoing.write(chunk.subarray(0, Math.max(0, fault.cutAfter - from)), () => outgoing.destroy());
        return;
      }
      done(null, chunk);
    },
  });
}
