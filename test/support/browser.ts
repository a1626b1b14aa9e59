import { type Browser, chromium } from 'playwright-core';

export function launchChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: [
      // Containers run tests as root and have a small /dev/shm; the pages are our own files.
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--disable-gpu',
      '--disable-background-networking',
    ],
  });
}
