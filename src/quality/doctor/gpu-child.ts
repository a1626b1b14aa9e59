import { loadAddon } from '../../addon/addon.js';
import { serve } from '../../base/process/supervised-child.js';

serve(async () => loadAddon().gpus());
