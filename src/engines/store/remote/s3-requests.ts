import type { GetObjectCommand, S3Client, UploadPartCommand } from '@aws-sdk/client-s3';
import type { SignedRequest } from './range-connection.js';

/** The part of the SDK's own request that goes over the wire. */
interface WireRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Record<string, string>;
}

/**
 * A request as the SDK signs it, without sending it: endpoint, credentials, region and clock correction are the SDK's. Rejects as sending would
 * before anything is sent (no credentials).
 */
export async function signedRequest(
  client: S3Client,
  command: GetObjectCommand,
  signal: AbortSignal | undefined,
): Promise<SignedRequest> {
  let signed: WireRequest | undefined;
  command.middlewareStack.addRelativeTo(
    () => async (step: { request?: unknown }) => {
      signed = step.request as WireRequest;
      // What the rest of the stack takes for the server's answer.
      return { response: {}, output: { $metadata: {} } } as never;
    },
    { relation: 'after', toMiddleware: 'httpSigningMiddleware', name: 'signedOnly' },
  );
  await client.send(command, signal === undefined ? {} : { abortSignal: signal });
  if (signed === undefined) throw new Error('The SDK has no request to sign.');
  return wire(signed);
}

/**
 * Sends a part without its SHA-256 in the signature, which would cost the sender and the server a pass over it each: engines have a SHA-256 of
 * their own in passport and metadata, and every reader checks it.
 */
export function withoutPayloadDigest(command: UploadPartCommand): void {
  command.middlewareStack.add(
    (next) => (step) => {
      (step.request as WireRequest).headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
      return next(step);
    },
    { step: 'build', name: 'withoutPayloadDigest' },
  );
}

function wire({ protocol, hostname, port, path, query = {}, headers }: WireRequest): SignedRequest {
  const secure = protocol === 'https:';
  const search = Object.entries(query)
    .flatMap(([name, value]) => [value ?? ''].flat().map((one) => `${encode(name)}=${encode(one)}`))
    .join('&');
  return {
    secure,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port ?? (secure ? 443 : 80),
    path: search === '' ? path : `${path}?${search}`,
    headers,
  };
}

/** As signatures want it: everything but letters, digits and «-_.~». */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
