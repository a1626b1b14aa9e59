import { loadAddon } from '../../addon/addon.js';
import { serveSession } from '../../base/process/supervised-child.js';
import type { EventListener } from '../../events.js';
import { inProcessMeasurer } from './in-process-measurer.js';
import type { Measurer, MeasurerCall } from './measurer.js';

let measurer: Measurer | undefined;

serveSession(async (message, emit: EventListener) => {
  measurer ??= inProcessMeasurer(loadAddon(), emit);
  const { call, request } = message as MeasurerCall;
  switch (call) {
    case 'gpu':
      return measurer.gpu(request);
    case 'open':
      return measurer.open(request);
    case 'measure':
      return measurer.measure(request);
    case 'layers':
      return measurer.layers(request);
    case 'cold':
      return measurer.cold(request);
  }
});
