/** Returns the declarations that `entries` lead to, by file. */
export function publicDeclarations(texts: ReadonlyMap<string, string>, entries: readonly string[]): Map<string, string>
