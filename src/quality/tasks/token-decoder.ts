import type { Binding } from '../../engines/runtime/session.js';
import type { TransducerFacts } from './transducer.js';
import type { DecodingModels } from './transducer-decoder.js';

/** A predictor and a joint network that are open: what turns encoder outputs into tokens. */
export interface TokenDecoder {
  /** Where it is described, for messages. */
  readonly path: string;
  /** Of the content of both models and of the facts; the same wherever the files lie. */
  readonly digest: string;
  readonly facts: TransducerFacts;
  readonly models: DecodingModels;
  /** What the joint network takes of an encoder. */
  readonly encoderInput: { readonly name: string; readonly shape: Binding['shape'] };
  /** The output of the joint network. */
  readonly logits: string;
  close(): Promise<void>;
}
