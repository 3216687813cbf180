/** Headers as whoever speaks to a relay gives them: spelled out, since only the DOM's library names what `fetch` takes. */
export type HeaderFields = Headers | Record<string, string> | [name: string, value: string][]
