import { serve } from '../system/supervised-child.js';
import { engineParity } from './parity-engine.js';
import type { ParityRequest } from './parity-request.js';

serve((request, context) => engineParity(request as ParityRequest, context));
