/** Lists of texts: lines, or a table with a head whose cells are apart by commas, semicolons or tabs. */

export interface Table {
  head: string[];
  rows: string[][];
}

/** Read lines, each a text, or a table if each row has as many cells as its head and these are two or more. */
export function readTable(written: string): Table {
  const lines = written.split(/\r?\n/).filter((line) => line.trim());
  for (const separator of [",", ";", "\t"]) {
    const [head = [], ...rows] = readCells(written, separator);
    if (head.length > 1 && rows.length && rows.every((row) => row.length === head.length)) return { head, rows };
  }
  const [[first = ""] = [], ...rest] = readCells(written, ","); // one column, in quotes where a text has line breaks
  const isQuoted = rest.length > 0 && written.includes('\n"') && rest.every((row) => row.length === 1);
  return isQuoted ? { head: [first], rows: rest } : { head: ["text"], rows: lines.map((line) => [line.trim()]) };
}

function readCells(written: string, separator: string): string[][] {
  const rows: string[][] = [[]];
  const cell = new RegExp(`(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n][^${separator}\\r\\n]*|))(${separator}|\\r?\\n|$)`, "y");
  for (let match = cell.exec(written); match; match = cell.exec(written)) {
    rows.at(-1)!.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    if (match[3] === "" || cell.lastIndex >= written.length) break;
    if (match[3] !== separator) rows.push([]);
  }
  return rows.filter((row) => row.some((one) => one.trim()));
}

/** Return the number of the column that has the longest texts. */
export function longestColumn({ head, rows }: Table): number {
  const lengths = head.map((_, i) => rows.reduce((sum, row) => sum + (row[i]?.length ?? 0), 0));
  return lengths.indexOf(Math.max(...lengths));
}

/** Write a table with commas, as spreadsheets open it. */
export function writeTable({ head, rows }: Table): string {
  const cell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return `\ufeff${[head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}
