import { TrtforgeError } from '../../../errors.js';

/** Where a remote store is and who asks. */
export interface RemoteAddress {
  /** Scheme, host and port of a server that speaks S3; null for AWS itself. */
  readonly endpoint: string | null;
  /** Null: that of the AWS environment or profile. */
  readonly region: string | null;
  readonly bucket: string;
  /** Key prefix of every engine, without slashes at its ends; empty for the bucket's root. */
  readonly prefix: string;
  /** Null: the AWS chain (environment, profile, SSO, container or instance role). */
  readonly credentials: RemoteCredentials | null;
}

interface RemoteCredentials {
  readonly accessKey: string;
  readonly secretKey: string;
}

/** Whether a place of engines is a bucket, not a folder or a file. */
export const isRemoteAddress = (place: string): boolean => /^[a-z0-9]+:\/\//.test(place);

const PREFIX = 'engines';

/** Bucket names as S3 has them; also keeps dots and slashes out of host names and paths. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/**
 * The remote store of a URI and the environment; null where neither names one.
 * URIs: `s3://bucket/prefix` and `minio://bucket/prefix` (endpoint from `ARTIFACTS_ENDPOINT`, `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`), `minio://host:9000/bucket/prefix`,
 * `http(s)://host:9000/bucket/prefix`. Without a prefix engines lie under `engines/`.
 * Without a URI the environment decides: `ARTIFACTS_BUCKET`, `_ENDPOINT`, `_REGION`, `_ACCESS_KEY`, `_SECRET_KEY`, `_USE_SSL`.
 * Throws TF_REMOTE_ADDRESS_INVALID.
 */
export function remoteAddress(
  uri: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): RemoteAddress | null {
  const place = uri === undefined ? placeOfEnvironment(environment) : placeOfUri(uri);
  if (place === null) return null;
  if (!BUCKET.test(place.bucket)) throw invalid(`${quoted(place.bucket)} is not a bucket name`);
  const { ARTIFACTS_REGION, AWS_REGION, AWS_DEFAULT_REGION } = environment;
  const own = place.endpoint ?? endpointOf(environment);
  const ofAws = own === null ? awsEndpointOf(environment) : null;
  return {
    endpoint: own ?? ofAws,
    // Where AWS' variables name the server, they name its region too.
    region: ARTIFACTS_REGION || (ofAws && (AWS_REGION || AWS_DEFAULT_REGION)) || null,
    bucket: place.bucket,
    prefix: checkedPrefix(place.prefix),
    credentials: credentialsOf(environment),
  };
}

/** Why no remote store is used although the environment names a server; null where it names none, or a bucket. */
export const unusedEndpoint = ({ ARTIFACTS_ENDPOINT, ARTIFACTS_BUCKET }: NodeJS.ProcessEnv): string | null =>
  ARTIFACTS_ENDPOINT && !ARTIFACTS_BUCKET
    ? 'ARTIFACTS_ENDPOINT is set and ARTIFACTS_BUCKET is not: no remote store is used. Set ARTIFACTS_BUCKET, or --remote none.'
    : null;

/** For people and logs: where it is, never who asks. */
export const formatAddress = ({ endpoint, bucket, prefix }: RemoteAddress): string =>
  `${endpoint === null ? 's3:/' : endpoint}/${[bucket, prefix].filter(Boolean).join('/')}`;

interface BucketPlace {
  readonly endpoint: string | null;
  readonly bucket: string;
  readonly prefix: string | null;
}

function placeOfEnvironment({ ARTIFACTS_BUCKET }: NodeJS.ProcessEnv): BucketPlace | null {
  return ARTIFACTS_BUCKET ? { endpoint: null, bucket: ARTIFACTS_BUCKET, prefix: null } : null;
}

function placeOfUri(uri: string): BucketPlace {
  const [, scheme = '', rest = ''] = /^([a-z0-9]+):\/\/(.*)$/.exec(uri) ?? [];
  if (rest.includes('@')) {
    throw invalid(
      'the address holds a user name or password; set keys in ARTIFACTS_ACCESS_KEY and ARTIFACTS_SECRET_KEY',
    );
  }
  if (scheme === 's3') return inBucket(null, rest);
  // A port marks the first part of minio://… as a host; else it is the bucket.
  if (scheme === 'minio') return /^[^/]*:\d+\//.test(rest) ? onHost('http', rest) : inBucket(null, rest);
  if (scheme === 'http' || scheme === 'https') return onHost(scheme, rest);
  throw invalid(`${quoted(uri)} is not an s3://, minio://, http:// or https:// address`);
}

function onHost(scheme: string, rest: string): BucketPlace {
  const slash = rest.indexOf('/');
  if (slash < 1) throw invalid(`${quoted(`${scheme}://${rest}`)} names no bucket after its host`);
  return inBucket(checkedEndpoint(`${scheme}://${rest.slice(0, slash)}`), rest.slice(slash + 1));
}

function inBucket(endpoint: string | null, path: string): BucketPlace {
  const [bucket = '', ...keys] = path.split('/');
  const prefix = keys.join('/').replace(/\/+$/, '');
  return { endpoint, bucket, prefix: prefix === '' ? null : prefix };
}

/** An endpoint without a scheme takes it from `ARTIFACTS_USE_SSL` (default: no TLS for a host of one's own). */
function endpointOf({ ARTIFACTS_ENDPOINT, ARTIFACTS_USE_SSL }: NodeJS.ProcessEnv): string | null {
  if (!ARTIFACTS_ENDPOINT) return null;
  const tls = /^(1|true|yes|on)$/i.test(ARTIFACTS_USE_SSL ?? '');
  const withScheme = /^https?:\/\//.test(ARTIFACTS_ENDPOINT)
    ? ARTIFACTS_ENDPOINT
    : `${tls ? 'https' : 'http'}://${ARTIFACTS_ENDPOINT}`;
  return checkedEndpoint(withScheme);
}

/** The variables of AWS' own tools, which the SDK would read itself, but with the bucket in the name of the host. */
function awsEndpointOf(environment: NodeJS.ProcessEnv): string | null {
  const { AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS } = environment;
  const endpoint = AWS_ENDPOINT_URL_S3 || AWS_ENDPOINT_URL;
  return !endpoint || AWS_IGNORE_CONFIGURED_ENDPOINT_URLS === 'true' ? null : checkedEndpoint(endpoint);
}

function checkedEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.hostname === '' || !/^https?:$/.test(url.protocol))
    throw invalid(`${quoted(text)} is not an endpoint such as http://minio:9000`);
  if (!['', '/'].includes(url.pathname))
    throw invalid(
      `${quoted(text)} has a path, which the signatures of S3 do not allow; serve S3 on a port or host of its own`,
    );
  return url.origin;
}

/** Keys are joined from parts that cannot climb: no empty part, no dots alone, no control characters. */
function checkedPrefix(prefix: string | null): string {
  if (prefix === null) return PREFIX;
  const parts = prefix.split('/');
  if (parts.some((part) => !/^[\w.+=~-]+$/.test(part) || /^\.+$/.test(part))) {
    throw invalid(`${quoted(prefix)} is not a prefix: letters, digits and ._-+=~ between single slashes`);
  }
  return prefix;
}

function credentialsOf(environment: NodeJS.ProcessEnv): RemoteCredentials | null {
  const { ARTIFACTS_ACCESS_KEY: accessKey, ARTIFACTS_SECRET_KEY: secretKey } = environment;
  if (!accessKey && !secretKey) return null;
  if (accessKey && secretKey) return { accessKey, secretKey };
  const missing = accessKey ? 'ARTIFACTS_SECRET_KEY' : 'ARTIFACTS_ACCESS_KEY';
  throw invalid(`${missing} is not set although its other half is`);
}

/** Keys do not belong in an address; where somebody put them there, they stand before the last `@` and are not printed. */
const quoted = (text: string): string => `"${text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1…@')}"`;

const invalid = (why: string): TrtforgeError =>
  new TrtforgeError('TF_REMOTE_ADDRESS_INVALID', `The remote store cannot be understood: ${why}.`);
