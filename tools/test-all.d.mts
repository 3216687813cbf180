export function packageProblems(files: readonly string[]): string[]
export function auditFindings(output: string): string[] | null
