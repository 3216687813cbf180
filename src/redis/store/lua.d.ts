/** The text of a script, with its includes expanded. */
declare module '*.lua' {
  const text: string
  export default text
}
