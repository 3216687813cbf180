export function llmsText(index: string, description: string): string
