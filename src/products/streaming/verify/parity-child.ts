import { serve } from '../../../base/process/supervised-child.js';
import type { ParityRequest } from '../compare/request.js';
import { engineParity } from './engine.js';

serve((request, context) => engineParity(request as ParityRequest, context));
