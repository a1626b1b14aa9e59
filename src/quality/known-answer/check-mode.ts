/** What is done with an engine that does not give its known answer: it is not used, it is used with a warning, or nobody looks. */
export const checkModes = ['refuse', 'warn', 'off'] as const;
export type CheckMode = (typeof checkModes)[number];
