import { serve } from '../../base/process/supervised-child.js';
import { loadAddon } from '../../tensorrt/addon/addon.js';

serve(async () => loadAddon().gpus());
