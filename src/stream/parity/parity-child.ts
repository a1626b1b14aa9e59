import { serve } from '../../system/supervised-child.js';
import { engineParity } from './engine.js';
import type { ParityRequest } from './request.js';

serve((request, context) => engineParity(request as ParityRequest, context));
