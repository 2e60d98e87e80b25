// Derived datatypes as values: MPI reports how each was created (MPI_Type_get_envelope, _get_contents).
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/process/message.h"

namespace bsp::shim {
namespace {

bool is_derived(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  real.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner != MPI_COMBINER_NAMED;
}

}  // namespace

std::unique_ptr<TypeRecipe> read_type(MPI_Datatype type) {
  auto recipe = std::make_unique<TypeRecipe>();
  int integers = 0;
  int addresses = 0;
  int types = 0;
  real.Type_get_envelope(type, &integers, &addresses, &types, &recipe->combiner);
  recipe->integers.resize(static_cast<std::size_t>(integers));
  recipe->addresses.resize(static_cast<std::size_t>(addresses));
  std::vector<MPI_Datatype> inner(static_cast<std::size_t>(types));
  real.Type_get_contents(type, integers, addresses, types, recipe->integers.data(), recipe->addresses.data(),
                         inner.data());
  for (MPI_Datatype t : inner) {
    TypeRecipe::Inner entry;
    if (is_derived(t)) {
      entry.derived = read_type(t);
      if (!is_f90(entry.derived->combiner)) real.Type_free(&t);  // get_contents added a reference
    } else {
      entry.predefined = t;
    }
    recipe->types.push_back(std::move(entry));
  }
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  real.Type_get_name(type, name, &length);
  recipe->name.assign(name, static_cast<std::size_t>(length));
  return recipe;
}

// Integers, addresses and types are in the order of the table in MPI 4.1, section 5.1.13.
MPI_Datatype make_type(const TypeRecipe& r) {
  std::vector<MPI_Datatype> inner;
  for (const auto& t : r.types) inner.push_back(t.derived ? make_type(*t.derived) : t.predefined);
  const int* i = r.integers.data();
  const MPI_Aint* a = r.addresses.data();
  MPI_Datatype made = pre.datatype_null;
  int rc = MPI_ERR_INTERN;
  switch (r.combiner) {
    case MPI_COMBINER_DUP:
      rc = real.Type_dup(inner[0], &made);
      break;
    case MPI_COMBINER_CONTIGUOUS:
      rc = real.Type_contiguous(i[0], inner[0], &made);
      break;
    case MPI_COMBINER_VECTOR:
      rc = real.Type_vector(i[0], i[1], i[2], inner[0], &made);
      break;
    case MPI_COMBINER_HVECTOR:
      rc = real.Type_create_hvector(i[0], i[1], a[0], inner[0], &made);
      break;
    case MPI_COMBINER_INDEXED:
      rc = real.Type_indexed(i[0], i + 1, i + 1 + i[0], inner[0], &made);
      break;
    case MPI_COMBINER_HINDEXED:
      rc = real.Type_create_hindexed(i[0], i + 1, a, inner[0], &made);
      break;
    case MPI_COMBINER_INDEXED_BLOCK:
      rc = real.Type_create_indexed_block(i[0], i[1], i + 2, inner[0], &made);
      break;
    case MPI_COMBINER_HINDEXED_BLOCK:
      rc = real.Type_create_hindexed_block(i[0], i[1], a, inner[0], &made);
      break;
    case MPI_COMBINER_STRUCT:
      rc = real.Type_create_struct(i[0], i + 1, a, inner.data(), &made);
      break;
    case MPI_COMBINER_SUBARRAY: {
      const int n = i[0];
      rc = real.Type_create_subarray(n, i + 1, i + 1 + n, i + 1 + 2 * n, i[1 + 3 * n], inner[0], &made);
      break;
    }
    case MPI_COMBINER_DARRAY: {
      const int n = i[2];
      rc = real.Type_create_darray(i[0], i[1], n, i + 3, i + 3 + n, i + 3 + 2 * n, i + 3 + 3 * n, i[3 + 4 * n],
                                   inner[0], &made);
      break;
    }
    case MPI_COMBINER_RESIZED:
      rc = real.Type_create_resized(inner[0], a[0], a[1], &made);
      break;
    case MPI_COMBINER_F90_REAL:
      rc = real.Type_create_f90_real(i[0], i[1], &made);
      break;
    case MPI_COMBINER_F90_COMPLEX:
      rc = real.Type_create_f90_complex(i[0], i[1], &made);
      break;
    case MPI_COMBINER_F90_INTEGER:
      rc = real.Type_create_f90_integer(i[0], &made);
      break;
    default:
      break;
  }
  if (rc != MPI_SUCCESS) die("a derived datatype (combiner %d) can't be recreated", r.combiner);
  for (std::size_t t = 0; t < inner.size(); ++t)
    if (r.types[t].derived && !is_f90(r.types[t].derived->combiner)) real.Type_free(&inner[t]);
  return made;
}

}  // namespace bsp::shim
