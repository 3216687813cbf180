/** Returns `declarations`, by file, with a comment for each field of a schema that `entries` export. */
export function withHoverTexts(
  root: string,
  declarations: ReadonlyMap<string, string>,
  all: ReadonlyMap<string, string>,
  entries: readonly string[],
): Promise<Map<string, string>>
