import { z } from 'zod';

/** The JSON beside a signed plan, or in a document of a fleet: who vouches for the passport or the rest of the document. */
export const engineSignatureSchema = z.object({
  schema: z.literal('trtforge.signature/1'),
  algorithm: z.literal('ed25519'),
  /** First 16 hex digits of the SHA-256 of the public key's DER form. */
  keyId: z.string().regex(/^[0-9a-f]{16}$/),
  /** Base64 of 64 bytes over `trtforge.signature/1`, a line break, and the document in canonical JSON. */
  signature: z.string().regex(/^[A-Za-z0-9+/]{86}==$/),
});
export type EngineSignature = z.infer<typeof engineSignatureSchema>;

/** A passport, the description of a timing cache, or a document of a fleet. Its schema is signed with it: no signature fits a document of another kind. */
export interface Signable {
  readonly schema: string;
}
