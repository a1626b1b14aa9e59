/** Accents and speakers of espeak-ng 1.51. Its mbrola voices are not free, and robots and whisperers are left out. */
const ACCENTS = ['en-us', 'en-gb', 'en-gb-x-rp', 'en-gb-x-gbclan', 'en-029', 'en-us-nyc'];
const SPEAKERS =
  'm1 m2 m3 m4 m5 m6 m7 m8 f1 f2 f3 f4 f5 Alex Alicia Andy Annie Gene Hugo Lee Mike adam anika belinda benjamin boris caleb david ed edward john linda michel norbert paul pedro quincy rob sandro shelby steph travis victor zac';

/** An accent and a speaker, as `espeak-ng -v` takes them. */
export const trainingVoices: readonly string[] = ACCENTS.flatMap((accent) =>
  SPEAKERS.split(' ').map((speaker) => `${accent}+${speaker}`),
);

/** Neither their accents nor their speakers are in any training voice. */
export const unseenVoices: readonly string[] = ['en-gb-scotland+Andrea', 'en-gb-x-gbcwmd+max'];
