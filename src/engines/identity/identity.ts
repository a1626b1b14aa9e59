import type { z } from 'zod';
import { sha256 } from '../../base/files/digest.js';
import { canonicalJson } from './canonical-json.js';
import type { identityDocumentSchema } from './identity-schema.js';

export type IdentityDocument = z.infer<typeof identityDocumentSchema>;

/** SHA-256 of the canonical JSON of the document, as 64 hex digits. */
export const identityDigest = (document: IdentityDocument): string => sha256(canonicalJson(document));
