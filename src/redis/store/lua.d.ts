/** The text of a script, with its includes in place (`tools/lua.mjs`). */
declare module '*.lua' {
  const text: string
  export default text
}
