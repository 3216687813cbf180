/** The text of a script or of a part, with its includes expanded; and the scripts of a file with sections, by name. */
declare module '*.lua' {
  const text: string
  export default text
  export const scripts: Readonly<Record<string, string>>
}
