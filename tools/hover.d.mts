/** Returns `declarations`, by file, with a comment for each field of a schema. `root` has their sources in `src`. */
export function withHoverTexts(root: string, declarations: ReadonlyMap<string, string>): Promise<Map<string, string>>
