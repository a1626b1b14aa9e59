import { type ErrorCode, TrtforgeError } from '../../../errors.js';

/** The subject of a request to an object store, for the sentence of its failure. */
export interface Attempt {
  /** `reading engines/x.engine`, `uploading …`. */
  readonly doing: string;
  /** The store's address as `formatAddress` gives it. */
  readonly place: string;
}

interface Explanation {
  readonly code: ErrorCode;
  readonly why: string;
  readonly remedy?: string;
  /** Whether the same request may succeed a moment later. */
  readonly passing: boolean;
}

/** The parts of an SDK error, a Node system error or a TLS error that tell them apart. */
interface Facts {
  readonly name: string;
  readonly status: number | undefined;
  /** `errno`-like code of this error or of the one below it. */
  readonly code: string;
  readonly message: string;
}

interface Rule {
  readonly when: (facts: Facts) => boolean;
  readonly explanation: Explanation;
}

const named =
  (...names: readonly string[]) =>
  ({ name, code }: Facts) =>
    names.includes(name) || names.includes(code);

const status =
  (...statuses: readonly number[]) =>
  (facts: Facts) =>
    facts.status !== undefined && statuses.includes(facts.status);

/** The first rule that fits explains; names before statuses, since one status has many causes. */
const rules: readonly Rule[] = [
  {
    when: named('AnswerTooLarge'),
    explanation: {
      code: 'TF_REMOTE_DAMAGED',
      why: 'the answer is larger than any of its kind',
      remedy: 'Check that the endpoint is an S3 server.',
      passing: false,
    },
  },
  {
    when: named('AnswerTooSlow'),
    explanation: {
      code: 'TF_REMOTE_UNREACHABLE',
      why: 'the answer does not end in time',
      remedy: 'Check the network and the server.',
      passing: false,
    },
  },
  {
    when: named('NoSuchBucket'),
    explanation: {
      code: 'TF_REMOTE_BUCKET_MISSING',
      why: 'the bucket does not exist',
      passing: false,
    },
  },
  {
    when: named('NoSuchKey', 'NotFound'),
    explanation: { code: 'TF_REMOTE_NOT_FOUND', why: 'there is no such object', passing: false },
  },
  {
    when: named('RequestTimeTooSkewed'),
    explanation: {
      code: 'TF_REMOTE_DENIED',
      why: 'the clock of this machine and that of the server differ by more than 15 minutes',
      remedy: "Set this machine's clock (chrony, timedatectl); signed requests carry the time.",
      passing: false,
    },
  },
  {
    when: named('PermanentRedirect', 'AuthorizationHeaderMalformed', 'IllegalLocationConstraintException'),
    explanation: {
      code: 'TF_REMOTE_DENIED',
      why: 'the bucket is in another region',
      remedy: "Set ARTIFACTS_REGION (or AWS_REGION) to the bucket's region.",
      passing: false,
    },
  },
  {
    when: ({ message }) => message === 'Region is missing',
    explanation: {
      code: 'TF_REMOTE_ADDRESS_INVALID',
      why: "no region is set, and AWS' own servers need one",
      remedy:
        "Set ARTIFACTS_REGION (or AWS_REGION) to the bucket's region; for another server set ARTIFACTS_ENDPOINT.",
      passing: false,
    },
  },
  {
    when: named('InvalidAccessKeyId', 'UnrecognizedClientException', 'InvalidClientTokenId'),
    explanation: {
      code: 'TF_REMOTE_DENIED',
      why: 'the server does not know this access key',
      remedy: 'Check ARTIFACTS_ACCESS_KEY, or the AWS profile or role in use.',
      passing: false,
    },
  },
  {
    when: named('SignatureDoesNotMatch'),
    explanation: {
      code: 'TF_REMOTE_DENIED',
      why: 'the secret key does not fit the access key',
      remedy: 'Check ARTIFACTS_SECRET_KEY; a proxy that rewrites host or path breaks signatures too.',
      passing: false,
    },
  },
  {
    when: named('ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired'),
    explanation: {
      code: 'TF_REMOTE_DENIED',
      why: 'the session token has expired',
      remedy: 'Renew the credentials (aws sso login, a new role session).',
      passing: false,
    },
  },
  {
    when: named('CredentialsProviderError'),
    explanation: {
      code: 'TF_REMOTE_DENIED',
      why: 'no credentials were found',
      remedy: 'Set ARTIFACTS_ACCESS_KEY and ARTIFACTS_SECRET_KEY, or an AWS profile or role.',
      passing: false,
    },
  },
  {
    when: named('PreconditionFailed', 'ConditionalRequestConflict'),
    explanation: { code: 'TF_REMOTE_CONFLICT', why: 'another writer was first', passing: false },
  },
  {
    when: named('ENOTFOUND', 'EAI_AGAIN'),
    explanation: {
      code: 'TF_REMOTE_UNREACHABLE',
      why: 'the name of the server cannot be resolved',
      remedy:
        "Check the endpoint (--remote, ARTIFACTS_ENDPOINT or AWS_ENDPOINT_URL_S3) and the machine's DNS.",
      passing: false,
    },
  },
  {
    when: named('ECONNREFUSED'),
    explanation: {
      code: 'TF_REMOTE_UNREACHABLE',
      why: 'nothing listens there',
      remedy:
        'Check the port of the endpoint (--remote, ARTIFACTS_ENDPOINT or AWS_ENDPOINT_URL_S3), and that the server runs.',
      passing: true,
    },
  },
  {
    when: ({ code, message }) =>
      /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|ERR_TLS|EPROTO/.test(code) ||
      /wrong version number/.test(message),
    explanation: {
      code: 'TF_REMOTE_UNREACHABLE',
      why: 'the TLS connection failed',
      remedy:
        'For an own certificate authority set NODE_EXTRA_CA_CERTS=ca.pem; for a server without TLS write http:// in the endpoint.',
      passing: false,
    },
  },
  // Before time-outs: the SDK calls a cut connection a TimeoutError too.
  {
    when: named('ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'UND_ERR_SOCKET'),
    explanation: { code: 'TF_REMOTE_UNREACHABLE', why: 'the connection was cut', passing: true },
  },
  {
    when: named('TimeoutError', 'ETIMEDOUT', 'ECONNABORTED', 'AbortError', 'RequestTimeout'),
    explanation: { code: 'TF_REMOTE_UNREACHABLE', why: 'the server does not answer in time', passing: true },
  },
  {
    when: (facts) =>
      named('SlowDown', 'ServiceUnavailable', 'InternalError')(facts) || (facts.status ?? 0) >= 500,
    explanation: { code: 'TF_REMOTE_UNREACHABLE', why: 'the server is overloaded or broken', passing: true },
  },
  {
    when: status(401, 403),
    explanation: {
      code: 'TF_REMOTE_DENIED',
      why: 'the credentials in use may not do this',
      remedy:
        'Grant them the permissions listed in docs/store.md, or use read-only credentials without uploads.',
      passing: false,
    },
  },
  {
    when: status(404),
    explanation: { code: 'TF_REMOTE_NOT_FOUND', why: 'there is no such object', passing: false },
  },
  {
    when: status(409, 412),
    explanation: { code: 'TF_REMOTE_CONFLICT', why: 'another writer was first', passing: false },
  },
];

const UNKNOWN: Explanation = { code: 'TF_REMOTE_FAILED', why: 'the request failed', passing: false };

/** An SDK or system error as ours, with a remedy. A TrtforgeError stays itself. */
export function remoteFailure(error: unknown, { doing, place }: Attempt): TrtforgeError {
  if (error instanceof TrtforgeError) return error;
  const facts = factsOf(error);
  const { code, why, remedy } = explain(facts);
  const facets = [...new Set([facts.name, facts.status, facts.code])]
    .filter((part) => part !== undefined && part !== '' && part !== 'Error')
    .join(' ');
  return new TrtforgeError(code, `${doing} at ${place} failed: ${why} (${facets || facts.message}).`, {
    cause: withoutSecrets(error),
    details: { server: facts.message, status: facts.status ?? null },
    remedy,
  });
}

/** The SDK hangs the whole exchange on its errors, keys and signatures too; what prints an error with its cause must not print those. */
function withoutSecrets(error: unknown): Error {
  const { name, code, message } = factsOf(error);
  return Object.assign(new Error(message), { name: name || 'Error', ...(code === '' ? {} : { code }) });
}

/** Whether the same request may succeed a moment later. */
export const isPassing = (error: unknown): boolean =>
  !(error instanceof TrtforgeError) && explain(factsOf(error)).passing;

const explain = (facts: Facts): Explanation => rules.find(({ when }) => when(facts))?.explanation ?? UNKNOWN;

function factsOf(error: unknown): Facts {
  if (typeof error !== 'object' || error === null)
    return { name: '', status: undefined, code: '', message: String(error) };
  const own = error as Record<string, unknown>;
  const below =
    typeof own.cause === 'object' && own.cause !== null ? (own.cause as Record<string, unknown>) : {};
  const metadata = own.$metadata as { httpStatusCode?: unknown } | undefined;
  return {
    name: textOf(own.name),
    status: typeof metadata?.httpStatusCode === 'number' ? metadata.httpStatusCode : undefined,
    code: textOf(own.Code) || textOf(own.code) || textOf(below.code),
    message: textOf(own.message),
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
