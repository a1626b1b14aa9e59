/** A line that the parser prints below an error: the code and the reason of each step that failed. */
export const REASON = /^\[\d{1,3}\] \S/;
