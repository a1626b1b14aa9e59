/** The action for an engine that does not return its known answer: it is not used, it is used with a warning, or it is not checked. */
export const checkModes = ['refuse', 'warn', 'off'] as const;
export type CheckMode = (typeof checkModes)[number];
