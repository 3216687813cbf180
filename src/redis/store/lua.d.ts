/** The text of a script, with its includes in place. */
declare module '*.lua' {
  const text: string
  export default text
}
